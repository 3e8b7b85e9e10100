import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { dataDirOf, embeddedSecrets } from '#scripts/embedded.ts'
import { makeFirstAccount, type FirstKeys } from '#scripts/first-account.ts'
import { release } from '#scripts/release.ts'
import { startServices } from '#scripts/services/services.ts'
import { superviseProcesses } from '#scripts/supervise.ts'
import { ConfigFault, readConfig, type Config } from '#shared/config.ts'
import { Refusal } from '#shared/errors.ts'
import { createLog } from '#shared/log.ts'
import { openPostgres } from '#shared/postgres/connect.ts'

const help = `Usage: npm start

Starts everything: PostgreSQL and MongoDB embedded in DATA_DIR (unless DATABASE_URL and MONGODB_URI
are set), the migrations, a first account, the API and a worker. SIGTERM or Ctrl-C stops it all; the
data stays.

PORT (3000), HOST (127.0.0.1), DATA_DIR (.vault); the README lists every variable.
`

/** Stand-ins for what the embedded start makes itself, so that the rest can be checked beforehand. */
const placeholders = {
  DATABASE_URL: 'postgres://embedded',
  MONGODB_URI: 'mongodb://embedded',
  MASTER_KEY: '0'.repeat(64),
  KEY_PEPPER: '0'.repeat(16),
}

const say = (line: string): void => void process.stdout.write(`${line}\n`)

if (process.argv.includes('--help')) {
  process.stdout.write(help)
} else {
  try {
    await start()
  } catch (error) {
    if (!(error instanceof ConfigFault) && !(error instanceof Refusal)) throw error
    const hint = error instanceof Refusal && error.hint ? `\n${error.hint}` : ''
    process.stderr.write(`${error.message}${hint}\n`)
    process.exitCode = 1
  }
}

/** @throws Refusal or ConfigFault when it cannot start here; whatever was started is stopped again. */
async function start(): Promise<void> {
  const { DATABASE_URL, MONGODB_URI } = process.env
  const dataDir = dataDirOf(process.env)
  const embedded = !DATABASE_URL || !MONGODB_URI
  // Faults of the operator's environment are said before anything is started.
  readConfig({ ...placeholders, ...process.env, ...(!embedded && ownSecrets()) })
  if (embedded) say(`Starting the embedded services in ${dataDir} …`)
  const services = await startServices({
    dataDir,
    log: say,
    databaseUrl: DATABASE_URL,
    mongodbUri: MONGODB_URI,
  })

  try {
    const env = {
      LOG_LEVEL: 'warn',
      ...(embedded && embeddedSecrets(dataDir)),
      ...process.env,
      DATABASE_URL: services.databaseUrl,
      MONGODB_URI: services.mongodbUri,
    }
    const config = readConfig(env)
    await release(config, createLog(config.logLevel, 'release'))
    const keys = await firstAccount(config)
    const ended = await superviseProcesses(
      [
        { name: 'web', program: 'api/index.ts' },
        { name: 'worker', program: 'workers/index.ts' },
      ],
      {
        env,
        died: services.died,
        ready: ({ port = config.port }) =>
          greet({ ...config, port }, embedded ? dataDir : null, keys),
      },
    )
    if (ended.fault) {
      process.stderr.write(`${ended.fault}\n`)
      process.exitCode = 1
    }
  } finally {
    await services.stop()
  }
}

function ownSecrets() {
  return {
    MASTER_KEY: process.env.MASTER_KEY,
    KEY_PEPPER: process.env.KEY_PEPPER,
  }
}

async function firstAccount(config: Config): Promise<FirstKeys | null> {
  const postgres = openPostgres(config.databaseUrl, { max: 1, onError: () => {} })
  try {
    return await makeFirstAccount(postgres, config)
  } finally {
    await postgres.close()
  }
}

/** Says where the service is and, at the first start, what opens it. */
function greet({ host, port }: Config, dataDir: string | null, made: FirstKeys | null): void {
  const shown =
    host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host
  const base_url = `http://${shown}:${port}`
  const file = dataDir && join(dataDir, 'credentials.json')
  const known =
    made ??
    (file && existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as FirstKeys) : null)
  if (file && known) {
    const { memory_key, admin_key } = known
    writeFileSync(file, `${JSON.stringify({ base_url, memory_key, admin_key }, null, 2)}\n`, {
      mode: 0o600,
    })
  }
  say(`\nMemory Vault is ready at ${base_url}`)
  if (made) say(`\n  Memory Key  ${made.memory_key}\n  Admin key   ${made.admin_key}`)
  if (made && file) say(`\nBoth keys are also in ${file}.`)
  else if (file && known) say(`Its keys are in ${file}.`)
  const key = made?.memory_key ?? '<your Memory Key>'
  say(`
Try it:

  curl -s '${base_url}/v1/memory/ingest?wait=true' -H 'Authorization: Bearer ${key}' \\
    -H 'Content-Type: application/json' \\
    -d '{"messages":[{"role":"user","content":"My cat is called Ada and she hates thunder."}]}'

  curl -s ${base_url}/v1/memory/search -H 'Authorization: Bearer ${key}' \\
    -H 'Content-Type: application/json' -d '{"query":"what is the name of my cat?","limit":3}'

Ctrl-C stops it; the data stays.`)
}
