"""What a snapshot names, with the row IDs of format version 3: PyIceberg reads all but these."""

import zlib

from pyiceberg.avro.file import AvroFile
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    PartitionFieldSummary,
    manifest_entry_schema_with_data_file,
)
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StructType

# What PyIceberg reads of manifest lists and manifests, and the row IDs of version 3 behind it.
MANIFEST_WITH_ROW_ID = Schema(*MANIFEST_LIST_FILE_SCHEMAS[2].fields, NestedField(520, "first_row_id", LongType()))
FILE_WITH_ROW_ID = StructType(*DATA_FILE_TYPE[2].fields, NestedField(142, "first_row_id", LongType()))


def listed(io, path):
    """The manifests that a manifest list names."""
    with AvroFile[ManifestFile](
        io.new_input(path), MANIFEST_WITH_ROW_ID, read_types={-1: ManifestFile, 508: PartitionFieldSummary}, read_enums={517: ManifestContent}
    ) as reader:
        return list(reader)


def entries(io, path):
    """The entries of a manifest."""
    with AvroFile[ManifestEntry](
        io.new_input(path),
        manifest_entry_schema_with_data_file(2, FILE_WITH_ROW_ID),
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as reader:
        return list(reader)


def manifests(table, snapshot):
    """The manifests of a snapshot, each with its first row ID."""
    return [(m, m[len(MANIFEST_WITH_ROW_ID.fields) - 1]) for m in listed(table.io, snapshot.manifest_list)]


def live_files(table, manifest):
    """The files of a manifest's live entries, each with its first row ID."""
    live = [e.data_file for e in entries(table.io, manifest.manifest_path) if e.status != ManifestEntryStatus.DELETED]
    return [(f, f[len(FILE_WITH_ROW_ID.fields) - 1]) for f in live]


def read_whole(read, io, path):
    """What read reads of a file, None where the file is not whole."""
    try:
        return read(io, path)
    except (EOFError, ValueError, zlib.error):
        return None
