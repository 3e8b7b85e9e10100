import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { trustLocalhost } from '#test/support/doubles/https-server.ts'
import { findFreeAddress } from '#test/support/start/otel-collector.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/** Why rsyslog with TLS cannot be run here, if so. */
export const noRsyslog =
  spawnSync('rsyslogd', ['-v']).error !== undefined ||
  spawnSync('sh', ['-c', 'ls /usr/lib/*/rsyslog/lmnsd_ossl.so']).status !== 0
    ? "Debian's packages rsyslog and rsyslog-openssl are not installed"
    : false

/**
 * Prepares an rsyslog of its own on loopback, configured as the guide of webhooks says.
 *
 * @returns how to start it, again and again, and the events that it has written, in their order
 */
export async function prepareRsyslog(t: Test, { tls }: { tls: boolean }) {
  const folder = mkdtempSync(join(tmpdir(), 'vault-rsyslog-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const port = (await findFreeAddress()).split(':')[1]!
  const { key, cert } = trustLocalhost(t)
  const at = (name: string): string => join(folder, name)
  for (const [name, text] of [
    ['ca.pem', cert],
    ['logs.pem', cert],
    ['logs.key', key],
  ] as const)
    writeFileSync(at(name), text)
  const guide = readFileSync('api/guides/webhooks.md', 'utf8')
  const settings = /```\n(global\([^`]+)```/
    .exec(guide)![1]!
    .replaceAll(/\/etc\/ssl\/|\/var\/log\//g, `${folder}/`)
    .replace('6514', port)
  const plain = settings.replace(/ StreamDriver\.Name.*(?=\))/, '')
  writeFileSync(at('rsyslog.conf'), `${tls ? settings : plain}\n`)
  const events = (): { message: string; metadata: { sequence: number; uid: string } }[] =>
    existsSync(at('memory-vault.json'))
      ? readFileSync(at('memory-vault.json'), 'utf8')
          .split('\n')
          .filter(Boolean)
          .map(line => JSON.parse(line) as ReturnType<typeof events>[number])
      : []
  const start = async () => {
    const child = spawn('rsyslogd', ['-n', '-f', at('rsyslog.conf'), '-i', at('pid')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
    const exited = once(child, 'exit')
    const end = async (signal: NodeJS.Signals): Promise<void> => {
      child.kill(signal)
      await exited
    }
    t.teardown(() => end('SIGKILL'))
    await waitUntil('rsyslog listens', async () => {
      if (child.exitCode !== null) throw new Error(said)
      return isOpen(Number(port))
    })
    return { pause: () => child.kill('SIGSTOP'), end }
  }
  return { url: `syslog+${tls ? 'tls' : 'tcp'}://localhost:${port}`, start, events }
}

const isOpen = (port: number): Promise<boolean> =>
  new Promise(done => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => done(true)).once('error', () => done(false))
    socket.once('connect', () => socket.destroy())
  })
