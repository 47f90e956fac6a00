"""The tables that are moved, each made once below DEPS."""
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


class Tables:
    def __init__(self, deps):
        self.deps, self.python = deps, os.path.join(deps, "venv", "bin", "python")

    def made(self, name, script, *args):
        """The folder of a table, made unless it is there whole."""
        folder = os.path.join(self.deps, name)
        done = os.path.join(folder, "made")
        if not os.path.exists(done):
            subprocess.run([self.python, os.path.join(HERE, script), folder, *map(str, args)], check=True)
            open(done, "w").close()
        return folder

    def orders(self, rows, *kind):
        """sales.orders, as it is, or "partitioned" or with "deletes"."""
        return self.made("_".join(["orders", *kind, str(rows)]), "make_orders.py", "--rows", rows, *(f"--{k}" for k in kind))

    def shape(self, shape, rows):
        """shapes.nested, shapes.wide or shapes.long."""
        return self.made(f"{shape}_{rows}", "make_shapes.py", shape, "--rows", rows)

    def big(self, megabytes):
        """bench.big: one file of so many MB."""
        folder = os.path.join(self.deps, f"big_{megabytes}")
        subprocess.run([self.python, os.path.join(HERE, "make_big.py"), folder, "--megabytes", str(megabytes)], check=True)
        return folder
