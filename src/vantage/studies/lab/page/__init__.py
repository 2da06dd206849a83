"""What people read: tables, pictures, and the page of claims."""
