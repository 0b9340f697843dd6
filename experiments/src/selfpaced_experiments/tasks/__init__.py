"""What the experiments compute, one module for each section; how it is counted and shown is elsewhere.

A cached answer stays valid while the module that computed it and the parts it used are unchanged.
"""
