"""Scopes, memories and all that belongs to them, and the models over their views."""

from django.db import migrations, models

from symfonic_pg.contrib.django.fields import RecordKeyField, ScopeField
from symfonic_pg.contrib.django.models import view
from symfonic_pg.contrib.django.operations import RunRevision

LAYERS = ("episodic", "procedural", "prospective", "semantic")


class Migration(migrations.Migration):
    initial = True
    dependencies = ()
    operations = (
        RunRevision(revision="0001", after=None, script="0001_initial"),
        migrations.CreateModel(
            name="Scope",
            fields=[
                ("path", ScopeField(primary_key=True, serialize=False)),
                ("tenant", models.TextField(db_column="tenant_id")),
                ("number", models.BigIntegerField(db_column="scope_id")),
                ("parent_number", models.BigIntegerField(db_column="parent_id", null=True)),
                ("kind", models.TextField()),
                ("level_id", models.TextField(verbose_name="id")),
                ("depth", models.SmallIntegerField()),
                ("created_at", models.DateTimeField()),
                ("children", models.IntegerField()),
                ("memories", models.IntegerField()),
            ],
            options={
                "managed": False,
                "db_table": view("scope_tree"),
                "default_permissions": ("view",),
                "base_manager_name": "objects",
            },
        ),
        migrations.CreateModel(
            name="Memory",
            fields=[
                ("key", RecordKeyField(primary_key=True, serialize=False)),
                ("tenant", models.TextField(db_column="tenant_id")),
                ("number", models.BigIntegerField(db_column="memory_id")),
                ("scope", ScopeField()),
                ("scope_number", models.BigIntegerField(db_column="scope_id")),
                ("record_id", models.TextField()),
                ("layer", models.TextField(choices=[(layer, layer) for layer in LAYERS])),
                ("kind", models.TextField(blank=True)),
                ("preview", models.TextField()),
                ("text", models.TextField()),
                ("salience", models.FloatField(null=True)),
                ("language", models.TextField(null=True)),
                ("metadata", models.JSONField()),
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
                ("valid_from", models.DateTimeField(null=True)),
                ("valid_until", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField(null=True)),
                ("uses", models.BigIntegerField()),
                ("last_used_at", models.DateTimeField(null=True)),
                ("embedded_by", models.TextField(null=True)),
            ],
            options={
                "managed": False,
                "db_table": view("memory_list"),
                "default_permissions": ("view",),
                "base_manager_name": "objects",
                "verbose_name_plural": "memories",
            },
        ),
    )
