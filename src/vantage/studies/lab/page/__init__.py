"""What people read: files of numbers, tables, pictures, and the page of claims."""
