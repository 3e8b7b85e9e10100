import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { access, mkdir, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Refusal } from '#shared/core/errors.ts'
import { cacheDirs, getOrBuildCached } from './cache.ts'
import { cleanEnvironment, type LineLogger } from './process.ts'

const execFileAsync = promisify(execFile)

const NEEDED_GLIBC = 2.38
const FETCH_TIMEOUT_MS = 180_000

/** The release of each distribution to fetch the C library from: the oldest that has glibc 2.38. */
const distributionReleases = [
  { id: 'debian', suite: 'trixie', keyring: '/usr/share/keyrings/debian-archive-keyring.gpg' },
  { id: 'ubuntu', suite: 'noble', keyring: '/usr/share/keyrings/ubuntu-archive-keyring.gpg' },
] as const

/** The path of the dynamic loader inside the package of the C library, by architecture. */
const loaderPaths: Partial<Record<string, string>> = {
  x64: 'usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2',
  arm64: 'usr/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1',
}

/**
 * Returns the command prefix that runs a program under a C library new enough for the
 * MongoDB engine; empty when the system's library is. Otherwise a newer library
 * is fetched once (13 MB to download, 13 MB on disk) from the configured
 * package mirror into a cache, without root rights and without changing the
 * packages of the system. Several processes may call this at once.
 *
 * @throws Refusal `unavailable` where the engine cannot run; the hint names MONGODB_URI.
 */
export async function resolveGlibcLoader(dataDir: string, log: LineLogger): Promise<string[]> {
  if (process.platform === 'darwin' && process.arch === 'arm64') return []
  const path = loaderPaths[process.arch]
  if (process.platform !== 'linux' || !path) {
    throw engineUnavailable(`there is none for ${process.platform} ${process.arch}`)
  }
  const version = glibcVersion()
  if (version === undefined) throw engineUnavailable('this Linux does not use the GNU C library')
  if (isAtLeast(version, NEEDED_GLIBC)) return []

  const root = await fetchGlibc(path, dataDir, version, log)
  const loader = join(root, path)
  return [loader, '--argv0', 'node', '--library-path', dirname(loader)]
}

function engineUnavailable(why: string): Refusal {
  return new Refusal(
    'unavailable',
    `The embedded MongoDB engine cannot run here: ${why}.`,
    'Set MONGODB_URI to a MongoDB server.',
  )
}

/** Returns the version of the running C library, such as `2.36`; undefined if it is not glibc. */
function glibcVersion(): string | undefined {
  // Otherwise the report resolves the host name of every open connection's peer.
  Object.assign(process.report, { excludeNetwork: true })
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } }
  return header.glibcVersionRuntime
}

function isAtLeast(version: string, needed: number): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major * 100 + minor >= Math.round(needed * 100)
}

async function fetchGlibc(
  path: string,
  dataDir: string,
  version: string,
  log: LineLogger,
): Promise<string> {
  const needs = `it needs glibc ${NEEDED_GLIBC}, this system has ${version}`
  const release = detectRelease()
  if (!release) throw engineUnavailable(needs)

  try {
    return await getOrBuildCached(
      cacheDirs(dataDir),
      `glibc-${release.suite}-${process.arch}`,
      work => {
        log(`Fetching a newer C library for the embedded MongoDB engine, once: ${needs}`)
        return fetchPackage(work, release, path)
      },
    )
  } catch (error) {
    const text = (error as { stderr?: string }).stderr?.trim() || (error as Error).message
    const line = text.replaceAll(/\s+/g, ' ').slice(0, 300)
    throw engineUnavailable(`${needs}, and a newer one could not be fetched with apt (${line})`)
  }
}

function detectRelease(): (typeof distributionReleases)[number] | undefined {
  const { ID = '', ID_LIKE = '' } = readOsRelease()
  // ID comes first: Ubuntu has ID_LIKE=debian.
  const ids = [ID, ...ID_LIKE.split(' ')]
  return ids
    .map(id => distributionReleases.find(release => release.id === id))
    .find(release => release)
}

function readOsRelease(): Partial<Record<string, string>> {
  try {
    const lines = readFileSync('/etc/os-release', 'utf8').matchAll(/^(\w+)="?([^"\n]*)"?$/gm)
    return Object.fromEntries([...lines].map(([, name, value]) => [name, value]))
  } catch {
    return {}
  }
}

async function fetchPackage(
  work: string,
  { suite, keyring }: (typeof distributionReleases)[number],
  path: string,
): Promise<void> {
  await access(keyring)
  const source = `deb [signed-by=${keyring}] ${await findPackageMirror()} ${suite} main\n`
  await writeFile(join(work, 'sources.list'), source)
  await writeFile(join(work, 'status'), '')
  for (const dir of ['lists/partial', 'archives/partial', 'made']) {
    await mkdir(join(work, dir), { recursive: true })
  }

  const settings = {
    'Dir::Etc::SourceList': join(work, 'sources.list'),
    'Dir::Etc::SourceParts': '/dev/null',
    'Dir::State': work,
    'Dir::State::Lists': join(work, 'lists'),
    'Dir::State::status': join(work, 'status'),
    'Dir::Cache': work,
    'Acquire::Languages': 'none',
    'Acquire::Retries': '2',
    'Acquire::http::Timeout': '20',
    // As root, apt would download as the user _apt, who cannot access a private directory.
    'APT::Sandbox::User': '',
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  const options = { cwd: work, timeout: FETCH_TIMEOUT_MS, env: cleanEnvironment({ LC_ALL: 'C' }) }
  await execFileAsync('apt-get', ['-q', ...flags, 'update'], options)
  await execFileAsync('apt-get', ['-q', ...flags, 'download', 'libc6'], options)

  const archive = (await readdir(work)).find(name => name.endsWith('.deb'))
  if (!archive) throw new Error('apt-get download left no package')
  await execFileAsync('dpkg-deb', ['-x', archive, 'made'], options)
  await access(join(work, 'made', path))
}

/** Finds the package mirror of this system's release in its package sources. */
async function findPackageMirror(): Promise<string> {
  const { VERSION_CODENAME, UBUNTU_CODENAME } = readOsRelease()
  const format = '$(RELEASE) $(COMPONENT) $(REPO_URI)'
  const { stdout } = await execFileAsync('apt-get', [
    'indextargets',
    '--format',
    format,
    'Created-By: Packages',
  ])
  const sources = stdout.split('\n').map(line => line.split(' '))
  const mirror = sources.find(
    ([release, component, uri]) =>
      (release === VERSION_CODENAME || release === UBUNTU_CODENAME) &&
      component === 'main' &&
      uri?.startsWith('http'),
  )
  if (!mirror?.[2]) throw new Error('no package source of this release')
  return mirror[2]
}
