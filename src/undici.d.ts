/** undici's pool by itself (`upstream.ts`); its own types describe only the whole package. */
declare module 'undici/lib/dispatcher/pool.js' {
  import type { Pool as Type } from 'undici';
  const Pool: typeof Type;
  type Pool = Type;
  export default Pool;
}
