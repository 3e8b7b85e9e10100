// Imported for what it does: from then on every command to MongoDB of this process is judged, and a
// process in which one broke the rule of scopes says so and does not end well.
import type { CommandStartedEvent } from 'mongodb'
import { commandListeners } from '#shared/storage/mongo/connect.ts'
import { findScopeViolation } from '#test/support/scope-audit.ts'

/** What a line about a violation begins with; also how one in a child process is recognised. */
export const scopeViolation = 'SCOPE VIOLATION'

const faults: string[] = []

commandListeners.push(({ commandName, command }: CommandStartedEvent) => {
  const fault = findScopeViolation(commandName, command)
  if (fault === null) return
  const collection = String(command[commandName])
  const where =
    new Error().stack?.match(/\/(?:api|workers|shared|scripts|test)\/[^)\s]+/)?.[0] ?? ''
  faults.push(fault)
  process.stderr.write(`${scopeViolation} in ${collection}: ${fault} ${where}\n`)
})

process.on('exit', () => {
  if (faults.length > 0) process.exitCode = 1
})
