import '#test/setup/env.ts'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import {
  checkPrintedKeys,
  environmentWithoutDatabases,
  ingestText,
  searchTexts,
  startService,
} from '#test/support/start/npm-start.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

t.setTimeout(0)

const dataDir = mkdtempSync(join(tmpdir(), 'vault-damaged-'))
t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
const at = (name: string): string => join(dataDir, name)

/** Starts, and expects it to end by itself. */
async function startRefused(): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, ['scripts/start.ts'], {
    env: { ...environmentWithoutDatabases, DATA_DIR: dataDir, PORT: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', chunk => (output += String(chunk)))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, output }
}

/** Moves files away. @returns puts them back. */
function remove(...names: string[]): () => void {
  for (const name of names) renameSync(at(name), at(`${name}.kept`))
  return () => {
    for (const name of names) {
      rmSync(at(name), { recursive: true, force: true })
      renameSync(at(`${name}.kept`), at(name))
    }
  }
}

/** Changes a file in place, so that its owner stays. @returns restores it. */
function damage(name: string, change: (path: string) => void): () => void {
  const before = readFileSync(at(name))
  change(at(name))
  return () => writeFileSync(at(name), before)
}

function writeGarbagePid(): () => void {
  const path = at('postgres/data/postmaster.pid')
  writeFileSync(path, 'garbage\nof a torn write\n')
  return () => rmSync(path)
}

const turtle = (): string =>
  globSync('mongodb/data/**/WiredTiger.turtle', { cwd: dataDir })[0] ?? 'no such file'

/** What to do to a sound installation, and what the refusal names. */
const damages: Record<string, { harm: () => () => void; says: RegExp }> = {
  'secrets.json is missing': {
    harm: () => remove('secrets.json'),
    says: /secrets\.json is missing, and the rest/,
  },
  'secrets.json and the credentials are missing': {
    harm: () => remove('secrets.json', 'credentials.json'),
    says: /secrets\.json is missing, and the rest/,
  },
  'the data of MongoDB is missing': {
    harm: () => remove('mongodb/data'),
    says: /mongodb\/data is missing, and the rest/,
  },
  'the data of PostgreSQL is missing': {
    harm: () => remove('postgres/data'),
    says: /postgres\/data is missing, and the rest/,
  },
  'secrets.json is cut': {
    harm: () => damage('secrets.json', path => truncateSync(path, 20)),
    says: /secrets\.json is damaged: it must hold MASTER_KEY/,
  },
  'postmaster.pid is garbage': {
    harm: writeGarbagePid,
    says: /postmaster\.pid is damaged: .*\nDelete it when no PostgreSQL runs/,
  },
  'WiredTiger.turtle is empty': {
    harm: () => damage(turtle(), path => truncateSync(path)),
    says: /The MongoDB engine did not start: .*\nIts log is .*mongodb/,
  },
  'the password is empty': {
    harm: () => damage('postgres/password', path => truncateSync(path)),
    says: /postgres\/password is empty or missing, and .*postgres\/data was made/,
  },
}

t.test('a first start that is killed as soon as there are keys loses none', async t => {
  const keys = at('credentials.json')
  // On a busy machine it may be ready before it is killed: then another one is.
  for (let tries = 0; tries < 5; tries++) {
    rmSync(dataDir, { recursive: true, force: true })
    mkdirSync(dataDir)
    const killed = spawn(process.execPath, ['scripts/start.ts'], {
      env: { ...environmentWithoutDatabases, DATA_DIR: dataDir, PORT: '0' },
      stdio: 'ignore',
    })
    const exited = once(killed, 'exit')
    await waitUntil('there are keys', () => existsSync(keys))
    killed.kill('SIGKILL')
    await exited
    if (!readFileSync(keys, 'utf8').includes('base_url')) break
  }
  t.notMatch(readFileSync(keys, 'utf8'), 'base_url', 'it was not ready yet')
  const later = await startService(t, dataDir)
  await checkPrintedKeys(t, later)
  t.equal((await ingestText(later.client, 'The piano was tuned in June')).status, 200)
  later.child.kill('SIGTERM')
  t.equal(await later.exit, 0, later.output())
})

t.test('half an installation is refused in a sentence, and starts once it is whole', async t => {
  const secrets = readFileSync(at('secrets.json'), 'utf8')

  for (const [what, { harm, says }] of Object.entries(damages)) {
    const restore = harm()
    const { code, output } = await startRefused()
    restore()
    t.not(code, 0, what)
    t.match(output, says, what)
    t.notMatch(output, /^\s+at .*\.ts/m, `${what}: no stack`)
  }

  t.equal(readFileSync(at('secrets.json'), 'utf8'), secrets, 'nothing was made again')
  t.equal(statSync(at('secrets.json')).mode & 0o777, 0o600)
  const last = await startService(t, dataDir)
  t.equal((await searchTexts(last.client, 'piano tuned'))[0], 'The piano was tuned in June')
  last.child.kill('SIGTERM')
  t.equal(await last.exit, 0, last.output())
})
