import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

/** Both stores: what most rules of the vault and of organizations need. */
export type Stores = { postgres: Postgres; mongo: Mongo }
