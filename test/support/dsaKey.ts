/** A DSA key that ssh-keygen created. The service admits no login with keys of this type. */
export const DSA_KEY =
  "ssh-dss AAAAB3NzaC1kc3MAAACBAM/7K4P6C27mGxWUkyyG6gSIEoiRttg8UkpGu9/kBnjjmR82Qcbh9u5/iWY0eAW9gwr1gm0kE6ZOpczvlxtFURGQjbBuTeuA0uzgR7y9bhDXW67q72UJKAIATKadKXE3qrSB3rW/yrR8xJDUKBSyN8Qg6eNq5muUojHptdMtVE6/AAAAFQCVZqmWebH1ayxRNTHDVD6wXHMBuwAAAIAZ/iq8cElj9xVKJqrUaEbnQdnFIXErmJ+xN4iutcol6yE8MlghL6GoHXL6TMucbxWTn0j+lU8l8N9EG9rpGEkdNchYjGVF87qa1OjBTC25Z4DU6FlGRTTOMRZFr+V8XaomDpKWbpN9emnCNFXuY58DSyRhuEfW01Er7+1iTSkt6AAAAIB3aUNExze2WPlzevbY9EiGH+parwrYdE17g8+x54/MLHrgnVcBqcXow7fiYvxtS8/01/gpOYWrt8dGEjLMjhZfhtO7Jjc9tW0A0hSStfLdcyudI85xNcBaD2HLbLIkr3vb42CT+RluPnGIvM18h1MUsmyCQrq0caXUgBrqUvTqVA==";

/** The MD5 fingerprint of {@link DSA_KEY}. */
export const DSA_FINGERPRINT = "90:17:b3:2f:40:4a:99:00:16:28:36:3f:9d:a0:10:34";
