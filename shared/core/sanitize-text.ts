import { Refusal } from '#shared/core/errors.ts'
import { nestedTooDeep } from '#shared/core/refusals.ts'

/** 200 levels drop a MongoDB connection. */
const depthMax = 64

/**
 * Makes every string of a parsed JSON value well-formed, in place, field names included: lone surrogates and NUL
 * become U+FFFD, since Postgres refuses them and MongoDB changes them silently.
 *
 * @throws Refusal `invalid` when the value nests deeper than 64 levels, or has a field `__proto__`.
 */
export function sanitizeJson(value: unknown): unknown {
  if (typeof value === 'string') return sanitizeText(value)
  const level = [value]
  for (let depth = 1, containers = level; containers.length > 0; depth++) {
    const next: unknown[] = []
    for (const container of containers) {
      if (typeof container !== 'object' || container === null) continue
      if (depth > depthMax) {
        throw nestedTooDeep(depthMax)
      }
      sanitizeStrings(container as Record<string, unknown>, next)
    }
    containers = next
  }
  return value
}

/** Replaces lone surrogates and NUL in one text. */
export const sanitizeText = (text: string): string =>
  text.toWellFormed().replaceAll('\u0000', '\uFFFD')

function sanitizeStrings(container: Record<string, unknown>, nested: unknown[]): void {
  for (const name of Object.keys(container)) {
    const key = sanitizeFieldName(container, name)
    const value = container[key]
    if (typeof value === 'object' && value !== null) nested.push(value)
    else if (typeof value === 'string' && !isWellFormed(value)) {
      container[key] = sanitizeText(value)
    }
  }
}

function sanitizeFieldName(container: Record<string, unknown>, name: string): string {
  if (name === '__proto__') {
    // A copy of the object would get another prototype.
    const hint = 'Give the field another name'
    throw new Refusal('invalid', 'The body has a field __proto__, which is not taken', hint)
  }
  if (isWellFormed(name)) return name
  const sanitized = sanitizeText(name)
  container[sanitized] = container[name]
  delete container[name]
  return sanitized
}

const isWellFormed = (text: string): boolean => text.isWellFormed() && !text.includes('\u0000')
