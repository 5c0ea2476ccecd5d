"""Reports as one HTML file each: `page` has the template, every report a module of its own."""
