from sanduk_site.cli import main

main()
