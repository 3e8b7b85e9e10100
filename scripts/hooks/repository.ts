import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/** Characters of a text in metadata. */
const valueMax = 256

/**
 * Names the repository that a folder belongs to: the address of its remote, such as `github.com/acme/api`, so that
 * every clone has one name; without a remote the path of the repository, without one that of the folder. No program
 * is started for it.
 */
export function nameRepository(folder: string): string {
  const root = findRoot(resolve(folder))
  const remote = root === undefined ? undefined : findRemote(root)
  return (remote ?? root ?? resolve(folder)).slice(-valueMax)
}

function findRoot(folder: string): string | undefined {
  if (existsSync(join(folder, '.git'))) return folder
  const parent = dirname(folder)
  return parent === folder ? undefined : findRoot(parent)
}

/** Reads the remote `origin`, else the first one, of a repository or of a worktree, whose `.git` is a file. */
function findRemote(root: string): string | undefined {
  const config = read(join(gitFolder(root), 'config'))
  const remotes: { name: string; url: string }[] = []
  let name: string | undefined
  for (const line of config.split('\n')) {
    const text = line.trim()
    if (text.startsWith('[')) name = /^\[remote "(.*)"\]$/.exec(text)?.[1]
    const [key, ...rest] = text.split('=')
    if (name !== undefined && key!.trim() === 'url' && rest.length > 0) {
      remotes.push({ name, url: rest.join('=').trim() })
    }
  }
  const remote = remotes.find(one => one.name === 'origin') ?? remotes[0]
  return remote && normalizeRemote(remote.url)
}

function gitFolder(root: string): string {
  const git = join(root, '.git')
  if (statSync(git).isDirectory()) return git
  const folder = resolve(
    root,
    read(git)
      .replace(/^gitdir:/, '')
      .trim(),
  )
  const common = read(join(folder, 'commondir')).trim()
  return common === '' ? folder : resolve(folder, common)
}

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Makes one name of the spellings of an address: host and path, without protocol, login, port and `.git`. */
export function normalizeRemote(url: string): string {
  const short = /^(?:[^@/]*@)?([^:/]+):(?!\/)(.+)$/.exec(url)
  const address = short && !url.includes('://') ? `ssh://${short[1]!}/${short[2]!}` : url
  try {
    const { hostname, pathname } = new URL(address)
    if (hostname === '') return address
    const path = decodeURIComponent(pathname).replace(/^\/+/, '')
    return `${hostname.toLowerCase()}/${path.replace(/\/$/, '').replace(/\.git$/, '')}`
  } catch {
    return url
  }
}
