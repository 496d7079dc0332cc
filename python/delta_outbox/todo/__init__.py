"""People and third parties answer To-Do items: over HTTP, on pages, by Kafka.

- app: the application, made of routers over a desk
- contracts: which contracts strangers may be given (`check_types`)
- credentials: who somebody is, by an API key or a JWT (`Credentials`)
- desk: what people may do with items, for programs and pages alike; begin here
- documents: what the API answers
- failures: what is wrong, as a status and a document
- item_thread: the one thread that asks for items and appends answers (`ItemThread`)
- key_log: where API keys are kept
- keys: what an API key is
- limits: how large, how deep and how slow a request may be
- openapi: the parts of the OpenAPI document that follow from contracts
- pages: what people see in a browser
- patience: how long a request waits, over all that it waits for
- people: which items a person may see and answer
- questions: what is asked, and who waits for its result (`Questions`)
- queue: answers that come by topics of Kafka
- rates: how many requests somebody may make
- routes: the API
- server: runs it until it is told to end (`serve`)
- signatures: who a third party is, by the signature of its webhook
- tokens: reads JWTs
"""
