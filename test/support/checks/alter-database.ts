import pg from 'pg'

/**
 * Sets defaults of a database, as an operator or a provider may, and closes all connections to it, unless they are to
 * stay.
 */
export async function alterDatabase(
  databaseUrl: string,
  settings: Readonly<Record<string, string>>,
  { closing = true }: { closing?: boolean } = {},
): Promise<void> {
  const name = new URL(databaseUrl).pathname.slice(1)
  const admin = new pg.Client({ connectionString: process.env.DATABASE_URL })
  await admin.connect()
  for (const [setting, value] of Object.entries(settings)) {
    await admin.query(`alter database ${name} set ${setting} to ${admin.escapeLiteral(value)}`)
  }
  const others = 'from pg_stat_activity where datname = $1'
  if (closing) await admin.query(`select pg_terminate_backend(pid) ${others}`, [name])
  await admin.end()
}
