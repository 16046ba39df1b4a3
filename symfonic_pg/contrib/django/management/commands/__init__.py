"""What `manage.py` can be asked about memories."""
