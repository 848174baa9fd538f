"""The main job on real traffic: crawler processes share eight forward proxies. Run `python -m examples.demo`."""
