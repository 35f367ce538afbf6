"""timerjobs: a serverless job scheduler. Rooms, and which way they import: docs/design.md."""
