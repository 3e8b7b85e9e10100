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
    throw new Refusal('unavailable', error.message, 'Choose another DATA_DIR.')
  })
  const self = process.getuid?.()
  const entry = await lstat(dir)
  if (self === undefined || (entry.isDirectory() && entry.uid === self)) return dir
  const message = `${dir} belongs to user ${entry.uid}, this is user ${self}`
  throw new Refusal('unavailable', message, 'Start as that user, or choose another DATA_DIR.')
}
