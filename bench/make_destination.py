"""Makes the empty destination of a job: zstd at level 1 for everybody who minds the table's properties.

usage: make_destination.py JOB
"""
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IcebergType, NestedField
from pydantic import TypeAdapter

from job import Job, catalog

job = Job.read()


def typed(text):
    return TypeAdapter(IcebergType).validate_python(text)


fields = []
for f in job.load("src").schema().fields:
    name = job.rename.get(f.name, f.name)
    kind = typed(job.promote[name]) if name in job.promote else f.field_type
    fields.append(NestedField(f.field_id, name, kind, required=f.required))
fields += [NestedField(10_000 + i, name, typed(kind)) for i, (name, kind) in enumerate(job.fill.items())]
spec = PartitionSpec()
if job.partition:
    source_id = next(f.field_id for f in fields if f.name == job.partition)
    spec = PartitionSpec(PartitionField(source_id, 1000, IdentityTransform(), job.partition))
into = catalog(job.out, "dst")
into.create_namespace("warehouse")
into.create_table(job.destination, Schema(*fields), partition_spec=spec,
                  properties={"write.parquet.compression-codec": "zstd", "write.parquet.compression-level": "1"})
