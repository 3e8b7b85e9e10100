import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { writePrivateFile } from '#scripts/private-file.ts'
import { mintKey, parseKey } from '#shared/access/key.ts'

/** The keys of the first account. */
export type FirstKeys = { memory_key: string; admin_key: string }

/** `base_url` is missing until the service is ready for the first time and has printed the keys. */
export type Credentials = FirstKeys & { base_url?: string }

export const credentialsPath = (dataDir: string): string => join(dataDir, 'credentials.json')

export const mintFirstKeys = (): FirstKeys => ({
  memory_key: mintKey('vault'),
  admin_key: mintKey('admin'),
})

/** @returns null when the file is missing or has no keys. */
export function readCredentials(dataDir: string): Credentials | null {
  try {
    const { base_url, memory_key, admin_key } = JSON.parse(
      readFileSync(credentialsPath(dataDir), 'utf8'),
    ) as Credentials
    if (!parseKey(memory_key) || !parseKey(admin_key)) return null
    return { ...(base_url && { base_url }), memory_key, admin_key }
  } catch {
    return null
  }
}

export function writeCredentials(dataDir: string, credentials: Credentials): void {
  const { base_url, memory_key, admin_key } = credentials
  const text = JSON.stringify({ base_url, memory_key, admin_key }, null, 2)
  writePrivateFile(credentialsPath(dataDir), `${text}\n`)
}
