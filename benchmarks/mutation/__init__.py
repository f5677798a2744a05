"""Mutation testing: is there a test that notices when the code is wrong?"""
