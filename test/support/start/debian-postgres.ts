import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { chmod, chown, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import type { Test } from 'tap'
import { resolveRunAsUser, type RunAsUser } from '#scripts/services/postgres-binaries.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const run = promisify(execFile)
const packagesDir = '/usr/lib/postgresql'

/** Versions of PostgreSQL, 14 or newer, that Debian's packages have installed. */
export const installedVersions = (): string[] =>
  existsSync(packagesDir)
    ? readdirSync(packagesDir).filter(
        name => Number(name) >= 14 && existsSync(`${packagesDir}/${name}/bin/initdb`),
      )
    : []

export const pgbouncerPath = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer'].find(existsSync)

export const superuserPassword = 'secret-password'

export type DebianPostgres = {
  port: number
  /** The certificate of the private authority that signed the server's. */
  caFile: string
  /** Starts PgBouncer in front of it. @returns its port. */
  startPgBouncer(mode: 'session' | 'transaction', users: Record<string, string>): Promise<number>
}

/** Starts a server that takes connections with TLS alone, until the test ends. */
export async function startDebianPostgres(t: Test, version: string): Promise<DebianPostgres> {
  const dir = await mkdtemp(join(tmpdir(), 'debian-postgres-'))
  const user = await resolveRunAsUser(join(dir, 'data'))
  t.teardown(() => rm(dir, { recursive: true, force: true }))
  await chmod(dir, 0o755)
  if (user) await chown(dir, user.uid, user.gid)
  await writeCertificates(dir)
  await writeFile(join(dir, 'password'), superuserPassword)
  await shareWith(user, dir)

  const bin = (name: string): string => `${packagesDir}/${version}/bin/${name}`
  const data = join(dir, 'data')
  const initdb = ['-D', data, '-U', 'postgres', '-A', 'scram-sha-256', '-E', 'UTF8', '-N']
  await run(bin('initdb'), [...initdb, `--pwfile=${join(dir, 'password')}`], { ...user, cwd: dir })
  await writeFile(join(data, 'pg_hba.conf'), 'hostssl all all 127.0.0.1/32 scram-sha-256\n')
  const port = await freePort()
  const settings = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    fsync: 'off',
    ssl: 'on',
    ssl_cert_file: join(dir, 'server.pem'),
    ssl_key_file: join(dir, 'server.key'),
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  startProgram(t, bin('postgres'), ['-D', data, ...options], { user, dir })
  const url = `postgres://postgres:${superuserPassword}@127.0.0.1:${port}/postgres?sslmode=no-verify`
  await waitUntil('the server takes connections', () => takesConnections(url))

  return {
    port,
    caFile: join(dir, 'ca.pem'),
    async startPgBouncer(mode, users) {
      const home = await mkdtemp(join(dir, 'pgbouncer-'))
      const ownPort = await freePort()
      const lines = Object.entries(users).map(([name, password]) => `"${name}" "${password}"\n`)
      await writeFile(join(home, 'users.txt'), lines.join(''))
      await writeFile(
        join(home, 'pgbouncer.ini'),
        `[databases]\n* = host=127.0.0.1 port=${port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n` +
          `listen_port = ${ownPort}\nunix_socket_dir =\nauth_type = scram-sha-256\n` +
          `auth_file = ${join(home, 'users.txt')}\npool_mode = ${mode}\ndefault_pool_size = 60\n` +
          `server_tls_sslmode = require\nclient_tls_sslmode = require\n` +
          `client_tls_cert_file = ${join(dir, 'server.pem')}\nclient_tls_key_file = ${join(dir, 'server.key')}\n`,
      )
      await shareWith(user, home)
      startProgram(t, pgbouncerPath!, [join(home, 'pgbouncer.ini')], { user, dir: home })
      const [name, password] = Object.entries(users)[0]!
      await waitUntil('the pooler takes connections', () =>
        takesConnections(
          `postgres://${name}:${password}@127.0.0.1:${ownPort}/postgres?sslmode=no-verify`,
        ),
      )
      return ownPort
    },
  }
}

/** A private authority, and a certificate of it for 127.0.0.1. */
async function writeCertificates(dir: string): Promise<void> {
  const openssl = (command: string) => run('openssl', command.split(' '), { cwd: dir })
  const days = '-days 2 -nodes -newkey rsa:2048'
  await openssl(`req -x509 ${days} -subj /CN=authority -keyout ca.key -out ca.pem`)
  await openssl(
    `req ${days.replace('-days 2 ', '')} -subj /CN=127.0.0.1 -keyout server.key -out server.csr`,
  )
  await writeFile(join(dir, 'names'), 'subjectAltName=IP:127.0.0.1\n')
  await openssl(
    'x509 -req -days 2 -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile names -out server.pem',
  )
}

/** Gives the files of a folder to the user that the servers run as; keys are for it alone. */
async function shareWith(user: RunAsUser | undefined, dir: string): Promise<void> {
  for (const name of ['.', ...(await readdir(dir))]) {
    const path = join(dir, name)
    if (user) await chown(path, user.uid, user.gid)
    if (name.endsWith('.key')) await chmod(path, 0o600)
  }
}

function startProgram(
  t: Test,
  program: string,
  args: string[],
  { user, dir }: { user: RunAsUser | undefined; dir: string },
): ChildProcess {
  const child = spawn(program, args, { ...user, cwd: dir, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const ended = new Promise<void>(resolve => child.once('close', () => resolve()))
  t.teardown(async () => {
    child.kill('SIGINT')
    await ended
    if (!t.passing()) t.comment(output)
  })
  return child
}

async function takesConnections(connectionString: string): Promise<boolean> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('select 1')
    return true
  } catch {
    return false
  } finally {
    await client.end().catch(() => {})
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise(resolve => server.close(resolve))
  return port
}
