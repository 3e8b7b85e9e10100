import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { readJson, stateFolder, writeJson } from './files.ts'
import { findRepository } from './repository.ts'

/** The folders that may use the name of a repository; `*` is all. */
type Holders = Record<string, string[]>

/** Whose memory a folder uses. */
export type Claim = {
  /** The repository's name; of a folder that is asked about its path, so that its memory is kept apart. */
  name: string
  /** What the person is asked, where the folder bears the name of a repository that was first used elsewhere. */
  question?: string
}

const path = (): string => join(stateFolder(), 'repositories.json')
const readHolders = (): Holders => (readJson(path()) as Holders | undefined) ?? {}

/**
 * Names the repository whose memory is used in a folder. A folder's own configuration says which one it is, so the
 * first folder that uses a name on this machine gets it, with its worktrees; another one waits until it is allowed.
 */
export function claimRepository(folder: string): Claim {
  const { name, root, hasRemote } = findRepository(folder)
  if (!hasRemote) return { name }
  const holders = readHolders()
  const known = holders[name] ?? []
  if (known.includes(root) || known.includes('*')) return { name }
  if (known.length === 0) {
    writeJson(path(), { ...holders, [name]: [root] })
    return { name }
  }
  return {
    name: root.slice(-256),
    question: `${root} says that it is ${name}, which was first used in ${known[0]}. Its memory is kept apart. If it is a clone of yours: memory-vault-hooks allow ${root}`,
  }
}

/**
 * Lets a folder use the memory of the repository that it says it is; of a name, every folder.
 *
 * @returns a sentence on it.
 */
export function allowRepository(folderOrName: string): string {
  const { name, root, hasRemote } = existsSync(folderOrName)
    ? findRepository(folderOrName)
    : { name: folderOrName, root: '*', hasRemote: folderOrName in readHolders() }
  if (!hasRemote)
    return `${folderOrName} is no folder with a remote, and no repository was used by this name.\n`
  const holders = readHolders()
  writeJson(path(), { ...holders, [name]: [...new Set([...(holders[name] ?? []), root])] })
  return `${root === '*' ? 'Every folder' : root} uses the memory of ${name}.\n`
}
