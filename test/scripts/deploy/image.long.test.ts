import { execFile, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { sha256Of } from '#scripts/publish/artifact.ts'
import { createTestConfig } from '#test/support/start/backend.ts'
import { layOutImage, openBuilder, parseDockerfile } from '#test/support/start/container-image.ts'
import { startFaultProxy } from '#test/support/doubles/fault-proxy.ts'
import { processEnvironment } from '#test/support/start/processes.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

t.test('what the image holds runs its programs without development packages', async t => {
  const image = mkdtempSync(join(tmpdir(), 'vault-image-'))
  t.teardown(() => rmSync(image, { recursive: true, force: true }))
  const dockerfile = readFileSync('scripts/deploy/Dockerfile', 'utf8')
  layOutImage(parseDockerfile(dockerfile), image)
  t.notOk(existsSync(join(image, 'node_modules/tap')))
  await runPrograms(t, (args, env) => [process.execPath, args, { cwd: image, env }])
})

const builder = await openBuilder(t)
const missing = typeof builder === 'string' && builder
t.test('the image is built and runs', { skip: missing }, async t => {
  if (typeof builder === 'string') return
  const { directory, user, env: settings, command, missing, system, file } = await builder()
  t.match(
    missing,
    [{ what: 'image for arm64', reason: /another architecture|not known/ }],
    'its base is not here',
  )
  t.ok(
    system.some(({ name, version }) => name === 'libc6' && version.startsWith('2.')),
    'its packages are known',
  )
  t.same(['node', 'api/index.ts'], command)
  t.notOk(existsSync(join(directory, 'app/node_modules/tap')))
  t.match(
    system.find(({ name }) => name === 'libjemalloc2'),
    { version: String, architecture: String },
    'so is what it has files of',
  )
  const traced = { ...settings, LD_TRACE_LOADED_OBJECTS: '1' }
  const linked = [directory, 'env', ...asVariables(traced), 'true']
  const { stdout } = await promisify(execFile)('chroot', linked, { env: { PATH: imagePath } })
  t.match(stdout, 'libjemalloc.so.2', 'its programs have the allocator')
  t.equal(
    sha256Of(readFileSync((await builder()).file)),
    sha256Of(readFileSync(file)),
    'the same bytes, built again',
  )
  await runPrograms(t, (args, env) => {
    const inner = { ...settings, ...env, HOST: '127.0.0.1', PATH: imagePath, HOME: '/tmp' }
    const inside = ['env', '--chdir=/app', ...asVariables(inner), 'node', ...args]
    return ['chroot', [`--userspec=${user}`, directory, ...inside], { env: { PATH: imagePath } }]
  })
})

const asVariables = (settings: Record<string, string>): string[] =>
  Object.entries(settings).map(([name, value]) => `${name}=${value}`)

/** `PATH` in the images of Node. */
const imagePath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** A command of the image: program, arguments, options. */
type ImageCommand = (
  args: string[],
  env: Record<string, string>,
) => [string, string[], { cwd?: string; env: Record<string, string> }]

/** Applies the migrations; then starts the API and a worker, checks their health and stops them. */
async function runPrograms(t: Test, command: ImageCommand): Promise<void> {
  const run = (...call: Parameters<ImageCommand>) => promisify(execFile)(...command(...call))
  const config = await createTestConfig(t)
  // Unix sockets of this machine are not in the image.
  const { url: mongodbUri } = await startFaultProxy(t, config.mongodbUri)
  const env = processEnvironment({ ...config, mongodbUri })
  await run(['scripts/migrate.ts'], env)
  t.match((await run(['scripts/create-account.ts', '--help'], env)).stdout, 'Usage')
  for (const [program, variable] of [
    ['api/index.ts', 'PORT'],
    ['workers/index.ts', 'METRICS_PORT'],
  ] as const) {
    const [file, args, options] = command([program], { ...env, [variable]: '0' })
    const child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'inherit'] })
    t.teardown(() => child.kill('SIGKILL'))
    const printed = textOf(child.stdout)
    const port = () =>
      /"port":(\d+)[^\n]*(?:web\.listening|worker\.watched)/.exec(printed())?.[1] ?? null
    await waitUntil(`${program} logs its port`, () => (port() ?? child.exitCode) !== null)
    const check = () => run(['scripts/deploy/health-check.js'], { ...env, [variable]: port()! })
    const isHealthy = () =>
      check().then(
        () => true,
        () => false,
      )
    await waitUntil(`${program} is healthy`, isHealthy)
    const ended = new Promise(resolve => child.once('exit', resolve))
    child.kill('SIGTERM')
    t.equal(await ended, 0, `${program} ends with 0`)
    await t.rejects(check(), 'a stopped process is not healthy')
  }
}

/** What a stream has given so far. */
function textOf(stream: Readable): () => string {
  let text = ''
  stream.setEncoding('utf8').on('data', (more: string) => (text += more))
  return () => text
}
