"""What an image holds: recipes, kits, rendering, image tags.

A recipe is a JSON file. `load` resolves it, `render` turns it into a build context, `image_tag`
names the image. Nothing here starts an engine or touches the network.
"""

from recipes.catalog import recipe_names
from recipes.digest import image_tag
from recipes.files import FileContent
from recipes.render import BuildContext, host_architecture, render
from recipes.resolve import Recipe, load
from recipes.schema import RecipeError

__all__ = [
    "BuildContext",
    "FileContent",
    "Recipe",
    "RecipeError",
    "host_architecture",
    "image_tag",
    "load",
    "recipe_names",
    "render",
]
