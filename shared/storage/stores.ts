import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

/** Both stores. */
export type Stores = { postgres: Postgres; mongo: Mongo }
