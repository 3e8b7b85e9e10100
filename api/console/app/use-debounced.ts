import { useEffect, useState } from 'preact/hooks'

/** A value after it has not changed for a third of a second. */
export function useDebounced<Value>(value: Value, delayMs = 300): Value {
  const [debounced, setDebounced] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setDebounced(value), delayMs)
    return () => clearTimeout(timer)
  }, [value])
  return debounced
}
