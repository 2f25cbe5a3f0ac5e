"""What an image holds: recipes, kits, rendering, image tags.

A recipe is a JSON file. `load` resolves it, `render` turns it into a build context, `image_tag`
names the image. Nothing here starts an engine or touches the network.
"""

from recipes.catalog import kit_names, misnamed, package_problems, recipe_names
from recipes.describing import kit_as_data, recipe_as_data
from recipes.digest import image_tag
from recipes.files import FileContent
from recipes.kits import Kit, load_kit
from recipes.render import BuildContext, architecture, host_architecture, render
from recipes.resolve import Recipe, load
from recipes.schema import RecipeError

__all__ = [
    "BuildContext",
    "FileContent",
    "Kit",
    "Recipe",
    "RecipeError",
    "architecture",
    "host_architecture",
    "image_tag",
    "kit_as_data",
    "kit_names",
    "load",
    "load_kit",
    "misnamed",
    "package_problems",
    "recipe_as_data",
    "recipe_names",
    "render",
]
