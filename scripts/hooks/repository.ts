import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'

/** Characters of a text in metadata. */
const valueMax = 256

/** A repository, or a folder that belongs to none. */
export type Repository = {
  /** The address of its remote, such as `github.com/acme/api`; without a remote the path of the folder. */
  name: string
  /** The folder that says so: of a worktree that of its repository. */
  root: string
  /** Whether the name comes from a remote, which any folder can write into its configuration. */
  hasRemote: boolean
}

/** Finds the repository that a folder belongs to. No program is started for it. */
export function findRepository(folder: string): Repository {
  const top = findTop(resolve(folder))
  if (top === undefined) return unnamed(resolve(folder))
  const { git, root } = findGit(top)
  const remote = findRemote(readConfig(read(join(git, 'config'))))
  return remote === undefined ? unnamed(top) : { name: cut(remote), root, hasRemote: true }
}

/** The name of the repository of a folder, as its configuration has it. */
export const nameRepository = (folder: string): string => findRepository(folder).name

const unnamed = (path: string): Repository => ({ name: cut(path), root: path, hasRemote: false })
const cut = (name: string): string => name.slice(-valueMax)

function findTop(folder: string): string | undefined {
  if (existsSync(join(folder, '.git'))) return folder
  const parent = dirname(folder)
  return parent === folder ? undefined : findTop(parent)
}

/**
 * Finds the folder with the configuration. A worktree is one of its repository only where that names the worktree too:
 * a file `.git` may point anywhere.
 */
function findGit(top: string): { git: string; root: string } {
  const path = join(top, '.git')
  const root = realPath(top)
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return { git: path, root }
  const pointed = read(path)
    .replace(/^gitdir:/, '')
    .trim()
  const folder = resolve(top, pointed)
  const common = read(join(folder, 'commondir')).trim()
  if (common === '') return { git: folder, root }
  const git = resolve(folder, common)
  const namesBack =
    realPath(resolve(folder, read(join(folder, 'gitdir')).trim())) === realPath(path)
  return { git, root: namesBack ? realPath(dirname(git)) : root }
}

const realPath = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** A value of git's configuration; names of sections and keys in lower case. */
type Entry = { section: string; of: string; key: string; value: string }

/** Reads git's configuration by its syntax (git-scm.com/docs/git-config): values in quotes, comments, one line for all. */
function readConfig(text: string): Entry[] {
  const entries: Entry[] = []
  let [section, of] = ['', '']
  for (const line of text.replaceAll(/\\\r?\n/g, '').split(/\r?\n/)) {
    const header = /^\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]/.exec(line)
    if (header) [section, of] = [header[1]!.toLowerCase(), unescape(header[2] ?? '')]
    const pair = /^\s*([A-Za-z][\w-]*)\s*=(.*)$/.exec(line.slice(header?.[0].length ?? 0))
    if (pair) entries.push({ section, of, key: pair[1]!.toLowerCase(), value: readValue(pair[2]!) })
  }
  return entries
}

const unescape = (text: string): string => text.replaceAll(/\\(.)/g, '$1')

/** Joins the quoted and the plain parts of a value, up to a comment. */
function readValue(text: string): string {
  let value = ''
  for (const [part, quoted] of text.matchAll(/"((?:[^"\\]|\\.)*)"|\\.|[^"\\#;]+|[#;].*/g)) {
    if (/^[#;]/.test(part)) break
    value += quoted === undefined ? unescape(part) : unescape(quoted)
  }
  return value.trim()
}

/** The remote `origin`, else the first one. */
function findRemote(config: readonly Entry[]): string | undefined {
  const remotes = config.filter(({ section, key }) => section === 'remote' && key === 'url')
  const remote = remotes.find(({ of }) => of === 'origin') ?? remotes[0]
  return remote && normalizeRemote(applyInsteadOf(remote.value, config))
}

/** Replaces the beginning of an address as `url.<base>.insteadOf` of the person or the repository says. */
function applyInsteadOf(url: string, config: readonly Entry[]): string {
  const { GIT_CONFIG_GLOBAL, XDG_CONFIG_HOME } = process.env
  const own = GIT_CONFIG_GLOBAL
    ? [GIT_CONFIG_GLOBAL]
    : [
        join(XDG_CONFIG_HOME || join(homedir(), '.config'), 'git/config'),
        join(homedir(), '.gitconfig'),
      ]
  const [longest] = [...own.flatMap(path => readConfig(read(path))), ...config]
    .filter(({ section, key, value }) => section === 'url' && key === 'insteadof' && value !== '')
    .filter(({ value }) => url.startsWith(value))
    .sort((one, other) => other.value.length - one.value.length)
  return longest ? longest.of + url.slice(longest.value.length) : url
}

/**
 * Makes one name of the spellings of an address: host and path in lower case, without protocol, login, port, query and
 * `.git`. Nothing of a login is in it, whatever the address looks like.
 */
export function normalizeRemote(address: string): string {
  const url = address.trim()
  const [, protocol, behind] = /^([a-z][a-z\d+.-]*):\/\/(.*)$/i.exec(url) ?? []
  if (protocol?.toLowerCase() === 'file') return behind!.slice(behind!.indexOf('/'))
  if (behind !== undefined) {
    const rest = withoutLogin(behind)
    const slash = rest.search(/[/?#]|$/)
    return nameOf(rest.slice(0, slash), rest.slice(slash))
  }
  // The short form of ssh; one letter before the colon is a drive.
  const [, host, path] = /^(?:.*@)?(\[[^\]]+\]|[^:/\\@]{2,}):(?!\/\/)(.*)$/.exec(url) ?? []
  return host === undefined ? url : nameOf(host, path!.replace(/^\d+\/(?=.*\/)/, ''))
}

/** A password may hold `@`, and a slash that should have been escaped. */
function withoutLogin(rest: string): string {
  const authority = rest.slice(0, rest.search(/[/?#]|$/))
  const isCut = !authority.includes('@') && /:(?!\d*$)/.test(authority.replace(/^\[.*\]/, ''))
  return isCut ? rest.slice(rest.lastIndexOf('@') + 1) : rest.slice(authority.lastIndexOf('@') + 1)
}

function nameOf(given: string, path: string): string {
  const host = hostOf(given.replace(/^(\[.*\]|[^:]*).*$/, '$1').toLowerCase())
  const parts = decode(path.replace(/[?#].*$/, ''))
    .toLowerCase()
    .split('/')
    .filter(part => part !== '')
  const name = parts.join('/').replace(/\.git$/, '')
  const azure = /^(?:([^.]+)\.)?(?:dev\.azure|(?:vs-ssh\.)?visualstudio)\.com$/.exec(host)
  return azure ? nameAtAzure(azure[1], name.split('/')) : `${host}/${name}`
}

/** Azure DevOps has three hosts, `v3` before the path of ssh and `_git` in that of https. */
function nameAtAzure(organization: string | undefined, parts: string[]): string {
  const path = parts[0] === 'v3' ? parts.slice(1) : parts
  const all =
    organization === undefined || organization === 'vs-ssh' ? path : [organization, ...path]
  // A project's own repository is named without the project.
  const whole = all[1] === '_git' ? [all[0], all[2], all[2]] : all.filter(part => part !== '_git')
  return `dev.azure.com/${whole.join('/')}`
}

/** A host without `www.` and the `ssh.` of port 443; aliases of ssh stand for the host that they name. */
function hostOf(host: string): string {
  const named = host.includes('.') ? host : aliasOf(host)
  // `github.com-work`: no top-level domain has a hyphen but those of other scripts.
  const [, plain = named] = /^(.+\.(?!xn--)[a-z]+)-[\w-]+$/.exec(named) ?? []
  return plain.replace(/^(?:www|(?:alt)?ssh)\.(?=.+\.)/, '')
}

/** The `HostName` of an alias in the configuration of ssh. */
function aliasOf(host: string): string {
  let isOf = false
  for (const line of read(join(homedir(), '.ssh/config')).split(/\r?\n/)) {
    const [, key = '', value = ''] = /^\s*(\w+)[\s=]+(.*?)\s*$/.exec(line) ?? []
    if (key.toLowerCase() === 'host') isOf = value.toLowerCase().split(/\s+/).includes(host)
    else if (isOf && key.toLowerCase() === 'hostname') return value.toLowerCase()
  }
  return host
}

function decode(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
