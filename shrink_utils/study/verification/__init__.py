"""Where results come from, and whether a folder of them is what it says."""
