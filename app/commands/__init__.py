"""One file a subcommand: what `app.cli` calls."""
