"""What an image holds: recipes, kits, rendering, image tags."""
