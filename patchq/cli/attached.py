"""Options whose value may be left out: then it stands behind ``=`` or not at all.

So getopt(3) and quilt have it: in ``graph --lines NAME`` NAME is a patch. click would take
it for the option's value.
"""

from __future__ import annotations

import click


class Command(click.Command):
    """A command with such options: those that have a `flag_value`, which is a text."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        bare = {
            name: option.flag_value
            for option in self.params
            if isinstance(option, click.Option)
            and not option.is_flag
            and isinstance(option.flag_value, str)
            for name in option.opts
            if name.startswith("--")
        }
        end = args.index("--") if "--" in args else len(args)
        said = [f"{arg}={bare[arg]}" if arg in bare else arg for arg in args[:end]]
        return super().parse_args(ctx, [*said, *args[end:]])
