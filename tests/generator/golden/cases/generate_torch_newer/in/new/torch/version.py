__version__ = '2.16.0a0+git0123456'
