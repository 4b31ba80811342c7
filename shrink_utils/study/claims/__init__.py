"""Published claims, each with an estimate, an interval and a verdict."""
