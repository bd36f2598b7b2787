"""Topics, services and actions of the nodes, one module per interface.

May import parameters and messages. Start reading at ``topic_driver.py`` (the arm's topics as a
driver) and ``arm_topics.py`` (the other end).
"""
