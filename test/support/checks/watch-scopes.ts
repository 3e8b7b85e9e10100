// Imported for its side effect: audits every MongoDB command of this process. A process with a violation
// of the scope rule prints it and exits with an error.
import type { CommandStartedEvent } from 'mongodb'
import { commandListeners } from '#shared/storage/mongo/connect.ts'
import { findScopeViolation } from '#test/support/checks/scope-audit.ts'

/** Prefix of a line about a violation, also to detect it in the output of a child process. */
export const scopeViolation = 'SCOPE VIOLATION'

const faults: string[] = []

commandListeners.push(({ commandName, command }: CommandStartedEvent) => {
  const fault = findScopeViolation(commandName, command)
  if (fault === null) return
  const collection = String(command[commandName])
  const where =
    new Error().stack?.match(/\/(?:api|workers|shared|scripts|test)\/[^)\s]+/)?.[0] ?? ''
  const violation = `${scopeViolation} in ${collection}: ${fault} ${where}`
  faults.push(violation)
  process.stderr.write(`${violation}\n`)
})

/** The violations since the last call: those of one test file. */
export const takeScopeViolations = (): string[] => faults.splice(0)

process.on('exit', () => {
  if (faults.length > 0) process.exitCode = 1
})
