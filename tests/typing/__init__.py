"""Programs of users, checked by mypy and never run: what type checkers know of the SDK.

`scripts/test` checks them. A line with `type: ignore[…]` is one that must be refused: mypy reports
an ignore that is not needed.
"""
