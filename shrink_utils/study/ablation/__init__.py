"""Chapter 07: arms × tasks × seeds, and the trade-off between task and isotropy."""
