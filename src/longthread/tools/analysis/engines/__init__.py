"""The engines that a source can stand on."""
