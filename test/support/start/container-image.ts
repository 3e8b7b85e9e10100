import { execFile, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { version } from '#api/edge/version.ts'
import { architectures, buildImages } from '#scripts/publish/image.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../..', import.meta.url))

export type DockerInstruction = { stage: number; name: string; value: string }

/** The instructions of a Dockerfile, lines that end in a backslash joined. */
export function parseDockerfile(text: string): DockerInstruction[] {
  let stage = -1
  return text
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter(line => line !== '' && !line.startsWith('#'))
    .map(line => {
      const [, name = '', value = ''] = /^(\w+) (.*)$/.exec(line) ?? []
      if (name === 'FROM') stage++
      return { stage, name, value }
    })
}

/** The sources and the destination of a `COPY` from the build context; none for one from another stage. */
export function copiedPaths({ name, value }: DockerInstruction): string[] {
  if (name !== 'COPY' || value.startsWith('--from')) return []
  return value.split(' ')
}

/** Lays out what the last stage of the image holds in a directory, production packages as links. */
export function layOutImage(instructions: readonly DockerInstruction[], directory: string): void {
  const last = instructions.at(-1)!.stage
  for (const instruction of instructions.filter(({ stage }) => stage === last)) {
    const paths = copiedPaths(instruction)
    const to = paths.pop()
    for (const from of paths) {
      const target = to!.endsWith('/') ? join(to!, from) : to!
      cpSync(join(root, from), join(directory, target), { recursive: true })
    }
  }
  linkProductionPackages(join(directory, 'node_modules'))
}

type LockedPackage = { dev?: boolean; devOptional?: boolean; link?: boolean }

function linkProductionPackages(directory: string): void {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, LockedPackage>
  }
  for (const [path, { dev, devOptional, link }] of Object.entries(lock.packages)) {
    const [, name] = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path) ?? []
    if (!name || dev || devOptional || link || !existsSync(join(root, path))) continue
    mkdirSync(dirname(join(directory, name)), { recursive: true })
    symlinkSync(join(root, path), join(directory, name))
  }
}

/** An image that was loaded into a container: its root directory, its settings; and what the release says of it. */
type BuiltImage = {
  directory: string
  user: string
  env: Record<string, string>
  command: string[]
  file: string
} & Pick<Awaited<ReturnType<typeof buildImages>>, 'missing' | 'system'>

/** Why this machine cannot build the image, if so. */
function builderMissing(): string | undefined {
  const lacks = (program: string): boolean => spawnSync(program, ['--version']).error !== undefined
  if (process.getuid?.() !== 0) return 'only root can build the image'
  return ['buildah', 'mmdebstrap', 'npm'].find(lacks)?.concat(' is not installed')
}

/** Longest that one program works on the base, in milliseconds. */
const baseTimeoutMs = 400_000

/**
 * Makes what the image is built on, without a registry of images: its base is made of Debian's packages, the Node that runs
 * this, and the npm of this machine. Packages come from npm's cache, which is filled first.
 *
 * @returns a function that builds the image as a release does and loads its archive; or why this machine cannot make the base: it may not
 *   reach Debian's packages, or have no right to mount
 */
export async function openBuilder(t: Test): Promise<string | (() => Promise<BuiltImage>)> {
  const missing = builderMissing()
  if (missing !== undefined) return missing
  const work = mkdtempSync(join(tmpdir(), 'vault-build-'))
  const store = ['--root', join(work, 'storage'), '--runroot', join(work, 'run')]
  const environment = { ...process.env, BUILDAH_ISOLATION: 'chroot', NODE_OPTIONS: '' }
  const limits = { maxBuffer: 1 << 26, timeout: baseTimeoutMs }
  const plain = async (file: string, args: string[], cwd = root): Promise<string> =>
    (await run(file, args, { cwd, env: environment, ...limits })).stdout.trim()
  const buildah = (...args: string[]): Promise<string> => plain('buildah', [...store, ...args])
  t.teardown(async () => {
    await buildah('rm', '--all').catch(() => {})
    await buildah('rmi', '--all', '--force').catch(() => {})
    rmSync(work, { recursive: true, force: true })
  })
  const packages = join(work, 'packages')
  const failure = await makeBase({ work, packages, store, plain, buildah }).catch(
    (error: Error) => error,
  )
  if (failure) return `the base cannot be made here: ${failure.message.slice(0, 200)}`
  return () => buildOnBase({ work, packages, store, plain, buildah })
}

type Tools = {
  work: string
  packages: string
  store: string[]
  plain(file: string, args: string[], cwd?: string): Promise<string>
  buildah(...args: string[]): Promise<string>
}

async function makeBase({ work, packages, plain, buildah }: Tools): Promise<void> {
  const system = join(work, 'system.tar')
  for (const path of ['package.json', 'package-lock.json', 'scripts/runtime']) {
    cpSync(join(root, path), join(packages, path), { recursive: true })
  }
  const variant = ['--quiet', '--variant=minbase', '--mode=root', '--dpkgopt=force-unsafe-io']
  // The packages that the image fetches, as a source of packages within the base.
  const names = Object.keys(architectures).map(name => `libjemalloc2:${name}`)
  const hook = `cd "$1" && mkdir -p opt/debs && cd opt/debs
    APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get download -q ${names.join(' ')}
    for deb in *.deb; do
      dpkg-deb --field $deb
      echo "Filename: ./$deb"
      echo "Size: $(stat -c %s $deb)"
      echo "SHA256: $(sha256sum $deb | cut -c1-64)"
      echo
    done > Packages`
  const native = process.arch === 'arm64' ? 'arm64' : 'amd64'
  const all = [...new Set([native, ...Object.keys(architectures)])].join(',')
  const install = ['ci', '--omit=dev', '--ignore-scripts', '--prefer-offline', '--no-audit']
  await Promise.all([
    plain('mmdebstrap', [
      ...variant,
      `--architectures=${all}`,
      `--customize-hook=${hook}`,
      'bookworm',
      system,
    ]),
    plain('npm', install, packages),
  ])
  const npm = join(await plain('npm', ['root', '--global']), 'npm')
  const base = await buildah('from', 'scratch')
  await buildah('add', '--quiet', base, system, '/')
  await buildah('copy', '--quiet', base, process.execPath, '/usr/local/bin/node')
  await buildah('copy', '--quiet', base, npm, '/usr/local/lib/node_modules/npm')
  const link = 'ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm'
  const source =
    'rm -rf /etc/apt/sources.list* && echo "deb [trusted=yes] file:/opt/debs ./" > /etc/apt/sources.list'
  const commands = `${link} && useradd --create-home node && ${source}`
  await buildah('run', base, '--', 'sh', '-c', commands)
  await buildah('commit', '--quiet', base, 'docker.io/library/node:24-bookworm-slim')
}

async function buildOnBase({ work, packages, store, plain, buildah }: Tools): Promise<BuiltImage> {
  const [cache, registry] = await Promise.all(
    ['cache', 'registry'].map(name => plain('npm', ['config', 'get', name], packages)),
  )
  const settings = join(work, 'npmrc')
  const lines = ['offline=true', `registry=${registry}`, 'omit-lockfile-registry-resolved=true']
  writeFileSync(settings, lines.join('\n'))
  const mounts = ['-v', `${settings}:/root/.npmrc:ro`, '-v', `${cache}:/root/.npm:O`]
  // The tree as it is, and not a commit.
  const source = {
    root,
    tree: root,
    version,
    commit: '',
    epoch: 1e9,
    lockDigest: '',
    isDirty: true,
  }
  const folder = mkdtempSync(join(work, 'built-'))
  const { files, missing, system } = await buildImages({
    source,
    work,
    folder,
    imageOptions: ['--pull-never', '--network', 'none', ...mounts],
    builderOptions: store,
  })
  if (files.length === 0) throw new Error(missing[0]?.reason)
  await plain('gunzip', ['--keep', files[0]!])
  const archive = `docker-archive:${files[0]!.replace(/\.gz$/, '')}`
  const container = await buildah('from', '--pull-never', archive)
  const { Docker } = JSON.parse(await buildah('inspect', container)) as {
    Docker: { config: { User: string; Cmd: string[]; Env: string[] } }
  }
  const { User: user, Cmd: command } = Docker.config
  const env = Object.fromEntries(Docker.config.Env.map(text => text.split(/=(.*)/s)))
  const directory = await buildah('mount', container)
  return { directory, user, env, command, file: files[0]!, missing, system }
}
