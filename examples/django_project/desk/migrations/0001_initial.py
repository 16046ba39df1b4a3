from django.db import migrations, models


class Migration(migrations.Migration):
    operations = (
        migrations.CreateModel(
            "Order",
            [
                ("id", models.BigAutoField("ID", auto_created=True, primary_key=True, serialize=False)),
                ("customer", models.CharField(max_length=100)),
                ("item", models.CharField(max_length=100)),
            ],
        ),
    )
