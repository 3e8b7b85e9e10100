const root = '/memories'
/** Metadata holds no longer text. */
const charactersMax = 256

/** What is wrong with a command. The SDK tells it to the model, after `Error: `. */
export class CommandFault extends Error {}

/**
 * A path below `/memories` as it is stored: without empty segments and an end of `/`.
 *
 * @throws CommandFault for a path elsewhere, also where it is written in escapes, and for one that no file can have
 */
export function readPath(path: string): string {
  const segments = path.split('/').filter(segment => segment !== '')
  if (!path.startsWith('/') || segments[0] !== 'memories') {
    throw new CommandFault(`Path must start with ${root}, got: ${path}`)
  }
  for (const segment of unescape(path).split(/[/\\]/)) {
    if (segment === '.' || segment === '..') {
      throw new CommandFault(`Path ${path} would escape ${root} directory`)
    }
  }
  // oxlint-disable-next-line no-control-regex -- what a listing cannot show
  if (/[\u0000-\u001f\u007f]/.test(path)) {
    throw new CommandFault('A path has no control characters')
  }
  const plain = `/${segments.join('/')}`
  if (plain.length > charactersMax) {
    throw new CommandFault(`Path ${path} is longer than ${charactersMax} characters`)
  }
  return plain
}

/** The text with its escapes read, twice, since `%252e` is one of `%2e`. */
function unescape(path: string): string {
  const once = (text: string): string =>
    text.replace(/%(2e|2f|5c|25)/gi, (_, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    )
  return once(once(path))
}

export const isRoot = (path: string): boolean => path === root

/** Whether a path is in a directory, at any depth. */
export const isBelow = (path: string, directory: string): boolean =>
  path.startsWith(`${directory}/`)

/** The lines of a directory two levels deep, as the documentation of the tool has them. */
export function listDirectory(directory: string, files: ReadonlyMap<string, number>): string {
  const sizes = new Map<string, number>([[directory, 0]])
  const names = [...files.keys()].filter(path => isBelow(path, directory)).sort()
  for (const path of names) {
    const size = files.get(path)!
    sizes.set(directory, sizes.get(directory)! + size)
    const segments = path.slice(directory.length + 1).split('/')
    if (segments.some(isHidden)) continue
    for (let depth = 1; depth <= Math.min(2, segments.length); depth++) {
      const isFile = depth === segments.length
      const item = `${directory}/${segments.slice(0, depth).join('/')}${isFile ? '' : '/'}`
      sizes.set(item, (sizes.get(item) ?? 0) + size)
    }
  }
  const head = `Here're the files and directories up to 2 levels deep in ${directory}, excluding hidden items and node_modules:`
  const lines = [...sizes].map(([path, size]) => `${formatSize(size)}\t${path}`)
  return [head, ...lines].join('\n')
}

const isHidden = (name: string): boolean => name.startsWith('.') || name === 'node_modules'

/** Such as `1.5K`. */
function formatSize(bytes: number): string {
  let [size, unit] = [bytes, 0]
  for (; size >= 1024 && unit < 3; unit++) size /= 1024
  return `${Number.isInteger(size) ? size : size.toFixed(1)}${'BKMG'[unit]}`
}
