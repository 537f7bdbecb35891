"""Print the size of the design space of each shape of the table on each CPU.

python -m benchmarks.model_shapes                       # all: about ten minutes on one core
python -m benchmarks.model_shapes --cpus znver3 --model ViT --below 32
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

import loopwright as lw
from benchmarks.model_shapes.shapes import CPUS, FEW_SCHEDULES, model_shapes
from benchmarks.model_shapes.sizes import space_size


def main(arguments: Sequence[str] | None = None) -> None:
    """Count, print a line for each shape and CPU, and sum up by operator."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model_shapes", description=__doc__)
    parser.add_argument("--cpus", default=",".join(CPUS), help="names, separated by commas")
    parser.add_argument("--model", default="", help="only models whose name has this part")
    parser.add_argument("--below", type=int, default=0, help="print only spaces smaller than this")
    args = parser.parse_args(arguments)
    shapes = [shape for shape in model_shapes() if args.model in shape.model]
    if not shapes:
        names = ", ".join(dict.fromkeys(shape.model for shape in model_shapes()))
        parser.error(f"--model {args.model}: no model has this in its name; there are {names}")
    cpus = args.cpus.split(",")
    for cpu in cpus:
        try:
            lw.Target(f"cpu -mcpu={cpu}")
        except lw.TargetError as error:
            parser.error(f"--cpus: {error}")
    totals: Counter[str] = Counter()
    few: Counter[str] = Counter()
    num_empty = 0
    for shape in shapes:
        for cpu in cpus:
            size = space_size(shape.spec, cpu)
            operator = shape.spec.split(":")[0]
            totals[operator] += 1
            few[operator] += size.schedules < FEW_SCHEDULES
            num_empty += not size.schedules
            if not args.below or size.schedules < args.below:
                where = f"{shape.model}, {shape.layer}"
                counts = f"{size.sketches:3} {size.schedules:22,}"
                print(f"{counts}  {cpu:16} {shape.spec:56} {where}", flush=True)
    for operator, total in totals.most_common():
        print(f"{operator}: {total} spaces, {few[operator]} with under {FEW_SCHEDULES} schedules")
    print(f"all: {totals.total()} spaces, {num_empty} empty, {few.total()} with too few schedules")


if __name__ == "__main__":
    main()
