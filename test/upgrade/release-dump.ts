import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { BSON, MongoClient, type Db, type Document } from 'mongodb'
import { getConstructionPlans } from 'pg-boss'
import pg from 'pg'
import type { Config } from '#shared/core/config.ts'
import { pgBossSchema } from '#shared/storage/queue/boss.ts'

const folder = `${import.meta.dirname}/generated`
const migrations = 'shared/storage/postgres/migrations'

/** A request to the released service and what it answered. */
export type ReleasedRequest = {
  key: string
  method: string
  path: string
  headers: Record<string, string>
  body?: unknown
  status: number
  /** The texts of a search, a list and an export, sorted. */
  texts?: string[]
}

/** What is known of a release beside its data. */
export type ReleaseFacts = {
  version: string
  /** SHA-256 of each migration by its file: a released one stays as it is. */
  migrations: Record<string, string>
  requests: ReleasedRequest[]
  /** An exchange that was accepted and not stored when the dump was made. */
  pending: { key: string; text: string }
}

export const readReleaseFacts = (): ReleaseFacts =>
  JSON.parse(readFileSync(`${folder}/release.json`, 'utf8')) as ReleaseFacts

/** SHA-256 of every migration of this tree by its file. */
export const hashMigrations = (): Record<string, string> =>
  Object.fromEntries(
    readdirSync(migrations)
      .sort()
      .map(file => [file, createHash('sha256').update(migrationText(file)).digest('hex')]),
  )

const migrationText = (file: string): string => readFileSync(`${migrations}/${file}`, 'utf8')

/** Writes all that the two stores hold, and the facts of the release, into the tree. */
export async function writeDump(
  { databaseUrl, mongodbUri }: Config,
  facts: Omit<ReleaseFacts, 'migrations'>,
): Promise<void> {
  mkdirSync(folder, { recursive: true })
  await withPostgres(databaseUrl, async client => {
    await postponeEnds(client)
    const tables = await listTables(client)
    const inserts: string[] = []
    for (const table of tables) inserts.push(...(await insertStatements(client, table)))
    // What the libraries for migrations and for the queue create.
    const library = `create table migrations
      (id serial primary key, name varchar(255) not null, run_on timestamp not null);`
    const queue = getConstructionPlans(pgBossSchema).trim()
    // Migrations and the queue's library write rows of their own.
    const empty = `truncate ${tables.map(({ name }) => name).join(', ')};`
    const text = [library, queue, empty, ...inserts].join('\n\n')
    writeFileSync(`${folder}/postgres.sql`, `${text}\n`)
  })
  await withMongo(mongodbUri, async db => {
    const lines: string[] = []
    for (const { name } of await db.listCollections().toArray()) {
      for await (const document of db.collection(name).find().sort({ _id: 1 })) {
        lines.push(BSON.EJSON.stringify({ collection: name, document }, { relaxed: false }))
      }
    }
    writeFileSync(`${folder}/mongodb.jsonl`, `${lines.join('\n')}\n`)
  })
  const released: ReleaseFacts = { ...facts, migrations: hashMigrations() }
  writeFileSync(`${folder}/release.json`, `${JSON.stringify(released, null, 1)}\n`)
}

/** The statements of the dump that name tables: lines that are no rows. */
export const readStatements = (): string[] =>
  readFileSync(`${folder}/postgres.sql`, 'utf8')
    .split('\n')
    .filter(line => !line.startsWith('{'))

/** Replaces what is in two databases by the released schema and data. */
export async function restoreDump({ databaseUrl, mongodbUri }: Config): Promise<void> {
  await withPostgres(databaseUrl, async client => {
    await client.query(`drop schema ${pgBossSchema} cascade; drop schema public cascade`)
    await client.query('create schema public')
    for (const file of Object.keys(readReleaseFacts().migrations)) {
      await client.query(migrationText(file))
    }
    await client.query(readFileSync(`${folder}/postgres.sql`, 'utf8'))
  })
  await withMongo(mongodbUri, async db => {
    await db.dropDatabase()
    for (const line of readFileSync(`${folder}/mongodb.jsonl`, 'utf8').trim().split('\n')) {
      const { collection, document } = BSON.EJSON.parse(line, { relaxed: false }) as {
        collection: string
        document: Document
      }
      await db.collection(collection).insertOne(document)
    }
  })
}

async function withPostgres(url: string, use: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await use(client)
  } finally {
    await client.end()
  }
}

async function withMongo(uri: string, use: (db: Db) => Promise<void>): Promise<void> {
  const client = new MongoClient(uri)
  try {
    await use(client.db())
  } finally {
    await client.close()
  }
}

/** Puts off what ends with time, so that a dump of any age can be read: credentials, leases, waiting jobs. */
async function postponeEnds(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ table: string }>(
    `select quote_ident(table_name) as table from information_schema.columns
     where table_schema = 'public' and column_name = 'expires_at'`,
  )
  const later = `interval '1000 years'`
  for (const { table } of rows) {
    await client.query(`update ${table} set expires_at = expires_at + ${later}`)
  }
  await client.query(`update ${pgBossSchema}.job set keep_until = keep_until + ${later}`)
}

type Table = { name: string; columns: string; sequences: string[] }

/**
 * The tables that hold rows of their own, those that others refer to first.
 * Partitions by time are left out: the queue's library makes those of its statistics for the day on which it is
 * installed and the next, so that a dump of another day would name tables that the restored schema does not have.
 * The dump of 1.0.0 named two of them in its `truncate` and could be restored on two days alone: they were taken out of
 * the file afterwards, in which no row stood for them.
 */
async function listTables(client: pg.Client): Promise<Table[]> {
  const { rows } = await client.query<Table & { id: number; refers: number[] }>(
    `select c.oid::int as id, c.oid::regclass::text as name,
       (select string_agg(quote_ident(attname), ', ' order by attnum) from pg_attribute
        where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = '') as columns,
       array(select pg_get_serial_sequence(c.oid::regclass::text, attname) from pg_attribute
         where attrelid = c.oid and attnum > 0 and not attisdropped
           and pg_get_serial_sequence(c.oid::regclass::text, attname) is not null) as sequences,
       array(select confrelid::int from pg_constraint
         where conrelid = c.oid and contype = 'f' and confrelid <> c.oid) as refers
     from pg_class c
     where relkind = 'r' and relnamespace = any (array['public', $1]::regnamespace[])
       and c.oid::regclass::text <> $1 || '.version'
       and not exists (select 1 from pg_inherits join pg_partitioned_table on partrelid = inhparent
         where inhrelid = c.oid and partstrat = 'r')
     order by name`,
    [pgBossSchema],
  )
  const ordered = new Set<number>()
  const visit = (id: number): void => {
    const table = rows.find(row => row.id === id)
    if (!table || ordered.has(id)) return
    table.refers.forEach(visit)
    ordered.add(id)
  }
  rows.forEach(({ id }) => visit(id))
  return [...ordered].map(id => rows.find(row => row.id === id)!)
}

/** Triggers are off: what they would write is among the rows. */
async function insertStatements(
  client: pg.Client,
  { name, columns, sequences }: Table,
): Promise<string[]> {
  const { rows } = await client.query<{ row: string }>(
    `select row_to_json(t)::text as row from ${name} t order by 1`,
  )
  if (rows.length === 0) return []
  const list = rows.map(({ row }) => row).join(',\n')
  const counters = await Promise.all(
    sequences.map(async sequence => {
      const { rows: found } = await client.query<{ last: string }>(
        `select last_value as last from ${sequence}`,
      )
      return `select setval('${sequence}', ${found[0]!.last});`
    }),
  )
  const insert = [
    `alter table ${name} disable trigger user;`,
    `insert into ${name} (${columns}) overriding system value select ${columns}`,
    `from json_populate_recordset(null::${name}, $dump$[\n${list}\n]$dump$);`,
    'set constraints all immediate;',
    `alter table ${name} enable trigger user;`,
    ...counters,
  ]
  return [insert.join('\n')]
}
