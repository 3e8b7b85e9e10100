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

/** The release of each distribution whose C library is fetched: the oldest that has 2.38. */
const distributionReleases = [
  { id: 'debian', suite: 'trixie', keyring: '/usr/share/keyrings/debian-archive-keyring.gpg' },
  { id: 'ubuntu', suite: 'noble', keyring: '/usr/share/keyrings/ubuntu-archive-keyring.gpg' },
] as const

type DistributionRelease = (typeof distributionReleases)[number]

/** Where each architecture keeps its loader inside the package of the C library. */
const loaderPaths: Partial<Record<string, string>> = {
  x64: 'usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2',
  arm64: 'usr/lib/aarch64-linux-gnu/ld-linux-aarch64.so.1',
}

/**
 * What to put before a command so that it runs under a C library new enough
 * for the MongoDB engine: nothing where the machine's own will do. Otherwise a
 * newer one is fetched once (about 13 MB to read, 13 MB kept) from the package
 * mirror the machine already trusts, as an ordinary user, into a cache; the
 * machine's own packages are not touched. Several processes may do so at once.
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

/** The running C library's version, such as `2.36`; undefined where it is not glibc. */
function glibcVersion(): string | undefined {
  // Without this the report looks up the name of every open connection's peer.
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

function detectRelease(): DistributionRelease | undefined {
  const { ID = '', ID_LIKE = '' } = readOsRelease()
  // The own id goes first: Ubuntu says that it is like Debian.
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
  { suite, keyring }: DistributionRelease,
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
    // As root apt would fetch as a user of its own, which cannot reach a private directory.
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

/** The mirror of this system's own release, as its package sources name it. */
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
  const own = sources.find(
    ([release, component, uri]) =>
      (release === VERSION_CODENAME || release === UBUNTU_CODENAME) &&
      component === 'main' &&
      uri?.startsWith('http'),
  )
  if (!own?.[2]) throw new Error('no package source of this release')
  return own[2]
}
