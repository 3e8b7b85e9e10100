import { existsSync } from 'node:fs'
import { serveChosenModel } from '#scripts/chosen-embedding-model.ts'
import { parseOptions } from '#scripts/command-line.ts'
import { mintFirstKeys, readCredentials, writeCredentials } from '#scripts/credentials.ts'
import type { Credentials, FirstKeys } from '#scripts/credentials.ts'
import {
  filledVariables,
  resolveDataDir,
  loadOrCreateSecrets,
  secretsPath,
} from '#scripts/embedded-environment.ts'
import { createFirstAccount } from '#scripts/first-account.ts'
import { formatStartBanner, formatKeys } from '#scripts/start-banner.ts'
import { makeLoginLink } from '#scripts/login-link.ts'
import { release } from '#scripts/release.ts'
import { missingPartRefusal, refuseHalfInstallation } from '#scripts/services/data-dir-check.ts'
import { findFreePort } from '#scripts/services/postgres.ts'
import { startServices, type DatabaseServices } from '#scripts/services/services.ts'
import { superviseProcesses } from '#scripts/supervise-processes.ts'
import { workerNodeOptions } from '#scripts/worker-options.ts'
import { hasAccounts } from '#shared/access/accounts.postgres.ts'
import { readConfig, type Config } from '#shared/core/config.ts'
import { runMain } from '#shared/core/process-lifecycle.ts'
import { createLog } from '#shared/core/log.ts'
import { openPostgres } from '#shared/storage/postgres/connect.ts'

const help = `Usage: npm start, or npm run dev

Starts PostgreSQL and MongoDB embedded in DATA_DIR (unless DATABASE_URL and MONGODB_URI are set),
applies the migrations, creates a first account and runs the API and a worker. SIGTERM or Ctrl-C stops
everything; the data remains. An embedding model that npm run embedding-model has fetched runs beside them.

  --watch  starts the API or the worker again when a file that it has loaded changes (npm run dev)
  --help   this text

PORT (3000), HOST (127.0.0.1), DATA_DIR (.vault); the README lists every variable.
`

/** Placeholders for the values the embedded start creates, to validate the other variables first. */
const placeholderEnvironment = {
  DATABASE_URL: 'postgres://embedded',
  MONGODB_URI: 'mongodb://embedded',
  MASTER_KEY: '0'.repeat(64),
  KEY_PEPPER: '0'.repeat(16),
}

const parentPollMs = 500

const printLine = (line: string): void => void process.stdout.write(`${line}\n`)

const { watch } = parseOptions(help, { watch: { type: 'boolean', default: false } })
const watchOptions = watch ? ['--watch', '--watch-preserve-output'] : []
await runMain(start)

/** @throws Refusal or ConfigError when it cannot start here; everything it started is stopped again. */
async function start(): Promise<void> {
  const { DATABASE_URL, MONGODB_URI } = process.env
  const dataDir = resolveDataDir(process.env)
  const embedded = !DATABASE_URL || !MONGODB_URI
  const embedder = serveChosenModel(dataDir, filledVariables(process.env), await findFreePort())
  // Reports faults of the environment before anything is started.
  readConfig({
    ...placeholderEnvironment,
    ...embedder.env,
    ...(!embedded && secretsFromEnvironment()),
  })
  if (embedded) checkInstallation(dataDir)
  if (embedded) printLine(`Starting the embedded services in ${dataDir} …`)
  const services = await startServices({
    dataDir,
    log: printLine,
    databaseUrl: DATABASE_URL,
    mongodbUri: MONGODB_URI,
  })

  try {
    if (embedded && !hasSecrets(dataDir)) await refuseAccountsWithoutSecrets(services, dataDir)
    const env = {
      LOG_LEVEL: 'warn',
      ...(embedded && loadOrCreateSecrets(dataDir)),
      ...embedder.env,
      DATABASE_URL: services.databaseUrl,
      MONGODB_URI: services.mongodbUri,
    }
    const config = readConfig(env)
    printLine((await release(config, createLog(config.logLevel, 'release'))).found)
    const keys = await ensureFirstAccount(config, embedded ? dataDir : null)
    const ended = await superviseProcesses(
      [
        ...embedder.programs,
        { name: 'web', program: 'api/index.ts', nodeOptions: watchOptions },
        {
          name: 'worker',
          program: 'workers/index.ts',
          nodeOptions: [...workerNodeOptions, ...watchOptions],
        },
      ],
      {
        env,
        unexpectedExit: services.unexpectedExit,
        parentExit: waitForNpmExit(),
        onReady: ({ port = config.port }) =>
          void printStartBanner({ ...config, port }, embedded ? dataDir : null, keys),
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

/** @throws Refusal `conflict` when half of an installation is missing, or its secrets are damaged. */
function checkInstallation(dataDir: string): void {
  const { DATABASE_URL, MONGODB_URI, MASTER_KEY, KEY_PEPPER } = process.env
  const hasBeenReady = readCredentials(dataDir)?.base_url !== undefined
  const parts = {
    secrets: !(MASTER_KEY && KEY_PEPPER),
    postgres: !DATABASE_URL,
    mongodb: !MONGODB_URI,
  }
  refuseHalfInstallation(dataDir, parts, hasBeenReady)
  if (existsSync(secretsPath(dataDir))) loadOrCreateSecrets(dataDir)
}

/** Whether the secrets come from the environment, or are in the data folder. */
function hasSecrets(dataDir: string): boolean {
  const { MASTER_KEY, KEY_PEPPER } = process.env
  return Boolean(MASTER_KEY && KEY_PEPPER) || existsSync(secretsPath(dataDir))
}

/** @throws Refusal `conflict`: with new secrets no key of these accounts would be found. */
async function refuseAccountsWithoutSecrets(
  { databaseUrl }: DatabaseServices,
  dataDir: string,
): Promise<void> {
  const postgres = openPostgres(databaseUrl, { max: 1, onError: () => {} })
  try {
    // A database that was never migrated has no table of accounts.
    const isUsed = await hasAccounts(postgres.query).catch((error: { code?: string }) => {
      if (error.code === '42P01') return false
      throw error
    })
    if (isUsed) throw missingPartRefusal(secretsPath(dataDir))
  } finally {
    await postgres.close()
  }
}

/**
 * Resolves when the npm process that started this one has ended: a killed npm forwards no signal.
 * Never resolves when this program was not started by npm.
 */
function waitForNpmExit(): Promise<void> {
  const npm = process.ppid
  return new Promise(resolve => {
    if (!['start', 'dev'].includes(process.env.npm_lifecycle_event ?? '')) return
    const timer = setInterval(() => {
      if (process.ppid === npm) return
      clearInterval(timer)
      resolve()
    }, parentPollMs).unref()
  })
}

function secretsFromEnvironment() {
  return {
    MASTER_KEY: process.env.MASTER_KEY,
    KEY_PEPPER: process.env.KEY_PEPPER,
  }
}

/**
 * Creates the first account if there is none. Its keys are written to the data folder (or printed)
 * before the commit, so a start that fails or is killed leaves no account with unknown keys.
 *
 * @returns the keys of the data folder or of the new account; null when they are unknown
 */
async function ensureFirstAccount(
  config: Config,
  dataDir: string | null,
): Promise<Credentials | null> {
  const known = dataDir === null ? null : readCredentials(dataDir)
  const provideKeys = (): FirstKeys => {
    const keys = known ?? mintFirstKeys()
    if (dataDir !== null) writeCredentials(dataDir, keys)
    else printLine(`The keys of the first account, shown once:\n\n${formatKeys(keys)}`)
    return keys
  }
  const postgres = openPostgres(config.databaseUrl, { max: 1, onError: () => {} })
  try {
    return (await createFirstAccount(postgres, config, provideKeys)) ?? known
  } finally {
    await postgres.close()
  }
}

/** Saves the address of the service in the data folder, and prints the banner. */
async function printStartBanner(
  { host, port }: Config,
  dataDir: string | null,
  keys: Credentials | null,
): Promise<void> {
  const hostname =
    host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host
  const baseUrl = `http://${hostname}:${port}`
  if (dataDir !== null && keys !== null) writeCredentials(dataDir, { ...keys, base_url: baseUrl })
  const loginLink = keys ? await makeLoginLink({ baseUrl, key: keys.memory_key }) : undefined
  printLine(formatStartBanner({ baseUrl, dataDir, keys, loginLink }))
}
