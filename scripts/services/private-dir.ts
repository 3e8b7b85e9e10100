import { lstat, mkdir } from 'node:fs/promises'
import { Refusal } from '#shared/core/errors.ts'

/**
 * Creates a folder that only this user can open, if it is missing. In a public
 * place another user may have created an entry of that name first.
 *
 * @throws Refusal `unavailable` when it cannot be created or belongs to another user.
 */
export async function ensurePrivateDir(dir: string): Promise<string> {
  await mkdir(dir, { recursive: true, mode: 0o700 }).catch((error: Error) => {
    throw dirUnavailable(error)
  })
  const self = process.getuid?.()
  const entry = await lstat(dir)
  if (self === undefined || (entry.isDirectory() && entry.uid === self)) return dir
  throw dirOfOther(dir, entry.uid, self)
}

export const dirUnavailable = ({ message }: Error): Refusal =>
  new Refusal('unavailable', message, 'Choose another DATA_DIR.')

/** @param owner and `self` are ids of users */
export const dirOfOther = (dir: string, owner: number, self: number): Refusal =>
  new Refusal(
    'unavailable',
    `${dir} belongs to user ${owner}, this is user ${self}`,
    'Start as that user, or choose another DATA_DIR.',
  )
