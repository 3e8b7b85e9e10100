import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { writePrivateFile } from '#scripts/private-file.ts'
import { mintKey, parseKey } from '#shared/access/key.ts'

/** What opens a new service. */
export type FirstKeys = { memory_key: string; admin_key: string }

/** Without an address the service has never been ready, and nobody has seen the keys. */
export type Credentials = FirstKeys & { base_url?: string }

export const credentialsPath = (dataDir: string): string => join(dataDir, 'credentials.json')

export const mintFirstKeys = (): FirstKeys => ({
  memory_key: mintKey('vault'),
  admin_key: mintKey('admin'),
})

/** @returns null when no file is there, or one that names no keys. */
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
  const shown = JSON.stringify({ base_url, memory_key, admin_key }, null, 2)
  writePrivateFile(credentialsPath(dataDir), `${shown}\n`)
}
