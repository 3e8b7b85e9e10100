import { useEffect, useState } from 'preact/hooks'

/** A value as it is once it has rested for a third of a second. */
export function useLater<Value>(value: Value, restMs = 300): Value {
  const [settled, settle] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => settle(value), restMs)
    return () => clearTimeout(timer)
  }, [value])
  return settled
}
